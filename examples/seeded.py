"""Draws the weights of a model from a seed, without a download, and calibrates its batch norms on images."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def seed(model: nn.Module, pictures: Tensor) -> None:
    """Draw the weights of a model's convolutions and linear layers, and fit its batch norms to pictures (N, 3, H, W).

    The draws are those of He et al., https://arxiv.org/abs/1502.01852, and always the same. A batch norm that has
    seen nothing would let each layer's scale, and what all pictures have in common, grow from layer to layer.
    """
    generator = torch.Generator().manual_seed(0)
    norms = []
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            norms.append((module, module.momentum))
            module.reset_parameters()
            module.momentum = 1.0  # only the last batch counts
    model.train()
    with torch.no_grad():
        model(pictures)
    model.eval()
    for norm, momentum in norms:
        norm.momentum = momentum


def spread(head: nn.Linear, scores: Tensor, deviation: float) -> None:
    """Give a model's scores (N, C) the mean 0 in each class and this standard deviation, by its last layer."""
    scale = deviation / (scores - scores.mean(dim=0)).std()
    with torch.no_grad():
        head.weight.mul_(scale)
        head.bias.sub_(scores.mean(dim=0)).mul_(scale)
