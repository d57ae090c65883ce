"""Draws the weights of a model from a seed, without a download, and calibrates its batch norms on images."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def seed(model: nn.Module, pictures: Tensor) -> None:
    """Draw the weights of a model's convolutions and linear layers, and calibrate its batch norms on (N, 3, H, W).

    Draws as in He et al., https://arxiv.org/abs/1502.01852, with a fixed seed. Without calibration, the scale of each
    layer, and the component that all pictures share, would grow from layer to layer.
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
    """Scale a model's scores (N, C), by its last layer, to mean 0 per class and this standard deviation."""
    scale = deviation / (scores - scores.mean(dim=0)).std()
    with torch.no_grad():
        head.weight.mul_(scale)
        head.bias.sub_(scores.mean(dim=0)).mul_(scale)
